"""Built-in step types, one module each, written against `docmill.plugin` as a user's would be."""
