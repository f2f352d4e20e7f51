"""Leaves: each module feeds the training of one framework to a tracker. Nothing in undermargin imports them."""
