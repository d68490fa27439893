"""The playground: a typed HTTP API around one model, and one page that uses it. It needs the extra `serve`."""
