"""`sql` and `shell`."""
