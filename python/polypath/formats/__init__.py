"""Other tools' files, read into scenarios."""
