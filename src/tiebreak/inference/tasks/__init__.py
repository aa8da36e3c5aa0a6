"""What tasks may be and what ties them: links, inferred exactly or by mean field."""
