from tamedit.cli.main import main

main()
