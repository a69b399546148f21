# The reader is in a checkout of Herdbook.
ln -s "$CHECKOUT/editors" editors
mkdir -p ~/.config/nvim
