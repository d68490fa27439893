"""TameDiT inside the libraries where people already work. Every module here needs one extra, and nothing else imports it.

hub.py       model repositories (`Model.from_pretrained`, `push_to_hub`)      pip install "tamedit[hub]"
gluonts.py   a predictor for GluonTS' evaluators                              pip install "tamedit[gluonts]"
sktime.py    a forecaster and an imputer                                      pip install "tamedit[sktime]"
pypots.py    `fit` and `impute` on PyPOTS' dictionaries                       needs nothing
"""
