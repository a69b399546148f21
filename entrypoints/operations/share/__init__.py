"""`share`: a page of the dashboard as one file."""
