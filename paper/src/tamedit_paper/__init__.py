"""The paper made again, and our own claims measured. The product, `tamedit`, never imports this package."""
