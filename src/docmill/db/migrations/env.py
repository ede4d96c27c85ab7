"""Alembic's entry: runs the revisions on the connection that `docmill.db.schema` hands over."""

from alembic import context

from docmill.db.tables import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
