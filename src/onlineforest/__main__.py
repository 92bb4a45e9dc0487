"""Entry point of `python -m onlineforest`."""

from onlineforest._cli import main

if __name__ == "__main__":
    main()
