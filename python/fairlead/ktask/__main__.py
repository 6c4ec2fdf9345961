"""`python3 -m fairlead.ktask`: prints docs/reference/kernel-library.md."""

from fairlead.ktask import library

print(library.documentation(), end="")
