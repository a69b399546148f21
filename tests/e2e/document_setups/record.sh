herdbook agent add brisk-otter
