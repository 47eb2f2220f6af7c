"""What hears and speaks: detectors of speech, recognizers and voices."""
