"""The paper reproduced, with its competitors, in one command: `python -m experiments.paper`."""
