"""Routes, one module for each noun: what comes in, which service is asked, what goes out."""
