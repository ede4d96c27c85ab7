"""Field schemas that come with Docmill, one YAML file each. Nothing but data lives here."""
