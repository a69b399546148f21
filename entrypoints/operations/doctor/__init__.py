"""`doctor`: a table of checks of the installation, which write nothing."""
