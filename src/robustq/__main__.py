"""`python -m robustq` is the command `robustq`."""

from robustq.cli.main import main

if __name__ == "__main__":
    main()
