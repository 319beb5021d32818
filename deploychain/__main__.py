from deploychain.cli.app import main

main()
