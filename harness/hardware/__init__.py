"""The parts of tools/hardware-check. Standard library only: the machine that runs them may lack a package index."""
