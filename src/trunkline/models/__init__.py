"""What thinks: language models behind one small interface."""
