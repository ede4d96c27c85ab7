CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);

CREATE TABLE process_templates (
	id VARCHAR(36) NOT NULL, 
	org_id VARCHAR(36) NOT NULL, 
	name VARCHAR NOT NULL, 
	version INTEGER NOT NULL, 
	processable_type VARCHAR NOT NULL, 
	task_type VARCHAR NOT NULL, 
	service_name VARCHAR, 
	digest VARCHAR(64) NOT NULL, 
	definition TEXT NOT NULL, 
	created_at VARCHAR(32) NOT NULL, undoes_id VARCHAR(36), shipped BOOLEAN DEFAULT 0 NOT NULL, 
	CONSTRAINT pk_process_templates PRIMARY KEY (id), 
	CONSTRAINT uq_process_templates_org_id_name_version UNIQUE (org_id, name, version), 
	CONSTRAINT uq_process_templates_org_id_name_digest UNIQUE (org_id, name, digest)
);

CREATE TABLE processing_jobs (
	id VARCHAR(36) NOT NULL, 
	org_id VARCHAR(36) NOT NULL, 
	template_id VARCHAR(36) NOT NULL, 
	entity_type VARCHAR NOT NULL, 
	entity_id VARCHAR NOT NULL, 
	status VARCHAR NOT NULL, 
	run INTEGER NOT NULL, 
	version INTEGER NOT NULL, 
	settled INTEGER NOT NULL, 
	total INTEGER NOT NULL, 
	priority INTEGER NOT NULL, 
	title VARCHAR NOT NULL, 
	metadata TEXT NOT NULL, 
	file_type VARCHAR, 
	created_by VARCHAR, 
	parent_job_id VARCHAR(36), 
	chain BLOB NOT NULL, 
	created_at VARCHAR(32) NOT NULL, 
	started_at VARCHAR(32), 
	finished_at VARCHAR(32), family VARCHAR DEFAULT '' NOT NULL, batch_id VARCHAR(36), held BOOLEAN DEFAULT 0 NOT NULL, 
	CONSTRAINT pk_processing_jobs PRIMARY KEY (id), 
	CONSTRAINT fk_processing_jobs_template_id FOREIGN KEY(template_id) REFERENCES process_templates (id), 
	CONSTRAINT ck_processing_jobs_status CHECK (status IN ('PENDING', 'IN_PROGRESS', 'WAITING', 'COMPLETED', 'PARTIAL_SUCCESS', 'FAILED', 'CANCELLED'))
);

CREATE TABLE processing_job_steps (
	job_id VARCHAR(36) NOT NULL, 
	position SMALLINT NOT NULL, 
	org_id VARCHAR(36) NOT NULL, 
	step_key VARCHAR NOT NULL, 
	status VARCHAR NOT NULL, 
	queue VARCHAR NOT NULL, 
	rank INTEGER NOT NULL, 
	epoch INTEGER NOT NULL, 
	failures INTEGER NOT NULL, 
	crashes INTEGER NOT NULL, 
	checkpointed BOOLEAN NOT NULL, 
	worker_id VARCHAR(36), 
	due_at VARCHAR(32), 
	deadline_at VARCHAR(32), 
	reason VARCHAR, 
	result TEXT, 
	error TEXT, 
	started_at VARCHAR(32), 
	finished_at VARCHAR(32), 
	CONSTRAINT pk_processing_job_steps PRIMARY KEY (job_id, position), 
	CONSTRAINT fk_processing_job_steps_job_id FOREIGN KEY(job_id) REFERENCES processing_jobs (id) ON DELETE CASCADE, 
	CONSTRAINT ck_processing_job_steps_status CHECK (status IN ('PENDING', 'READY', 'IN_PROGRESS', 'WAITING', 'COMPLETED', 'FAILED', 'SKIPPED', 'CANCELLED')), 
	CONSTRAINT ck_processing_job_steps_reason CHECK (reason IN ('condition', 'dependency_failed', 'job_failed'))
)
 WITHOUT ROWID;

CREATE INDEX ix_processing_job_steps_ready ON processing_job_steps (queue, org_id, rank, due_at, job_id) WHERE status = 'READY';

CREATE INDEX ix_processing_job_steps_running ON processing_job_steps (worker_id) WHERE status = 'IN_PROGRESS';

CREATE INDEX ix_processing_job_steps_waiting ON processing_job_steps (deadline_at) WHERE status = 'WAITING';

CREATE TABLE processing_job_events (
	job_id VARCHAR(36) NOT NULL, 
	version INTEGER NOT NULL, 
	org_id VARCHAR(36) NOT NULL, 
	at VARCHAR(32) NOT NULL, 
	data TEXT NOT NULL, 
	hash BLOB NOT NULL, 
	CONSTRAINT pk_processing_job_events PRIMARY KEY (job_id, version)
)
 WITHOUT ROWID;

CREATE TABLE processing_step_parts (
	job_id VARCHAR(36) NOT NULL, 
	position SMALLINT NOT NULL, 
	name VARCHAR NOT NULL, 
	org_id VARCHAR(36) NOT NULL, 
	value TEXT NOT NULL, 
	created_at VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_processing_step_parts PRIMARY KEY (job_id, position, name)
)
 WITHOUT ROWID;

CREATE TABLE workers (
	id VARCHAR(36) NOT NULL, 
	host VARCHAR NOT NULL, 
	boot_id VARCHAR NOT NULL, 
	pid INTEGER NOT NULL, 
	status VARCHAR NOT NULL, 
	started_at VARCHAR(32) NOT NULL, 
	expires_at VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_workers PRIMARY KEY (id), 
	CONSTRAINT ck_workers_status CHECK (status IN ('alive', 'stopped', 'dead'))
);

CREATE UNIQUE INDEX uq_processing_jobs_active ON processing_jobs (org_id, entity_type, entity_id, family) WHERE status IN ('PENDING', 'IN_PROGRESS', 'WAITING');

CREATE INDEX ix_processing_jobs_batch ON processing_jobs (batch_id, id) WHERE batch_id IS NOT NULL;

CREATE INDEX ix_processing_jobs_held ON processing_jobs (batch_id, id) WHERE held;

CREATE INDEX ix_processing_jobs_org ON processing_jobs (org_id, created_at, id);

CREATE INDEX ix_processing_jobs_parent ON processing_jobs (parent_job_id) WHERE parent_job_id IS NOT NULL;

CREATE INDEX ix_processing_jobs_finished ON processing_jobs (finished_at, id) WHERE finished_at IS NOT NULL;

CREATE TABLE processing_batches (
	id VARCHAR(36) NOT NULL, 
	org_id VARCHAR(36) NOT NULL, 
	title VARCHAR NOT NULL, 
	max_active INTEGER NOT NULL, 
	total INTEGER NOT NULL, 
	active INTEGER NOT NULL, 
	held INTEGER NOT NULL, 
	cancelling BOOLEAN DEFAULT 0 NOT NULL, 
	digest VARCHAR DEFAULT '' NOT NULL, 
	metadata TEXT NOT NULL, 
	created_by VARCHAR, 
	created_at VARCHAR(32) NOT NULL, 
	finished_at VARCHAR(32), 
	CONSTRAINT pk_processing_batches PRIMARY KEY (id), 
	CONSTRAINT ck_processing_batches_counts CHECK (active >= 0 AND held >= 0 AND active + held <= total AND max_active >= 0)
);

CREATE INDEX ix_processing_batches_org ON processing_batches (org_id, id);

CREATE INDEX ix_processing_batches_open ON processing_batches (id) WHERE finished_at IS NULL;

CREATE TABLE processing_issues (
	id VARCHAR(36) NOT NULL, 
	org_id VARCHAR(36) NOT NULL, 
	processable_type VARCHAR NOT NULL, 
	processable_id VARCHAR NOT NULL, 
	job_id VARCHAR(36), 
	position SMALLINT, 
	step_key VARCHAR, 
	epoch INTEGER, 
	code VARCHAR NOT NULL, 
	severity VARCHAR NOT NULL, 
	blocking BOOLEAN NOT NULL, 
	corrects BOOLEAN NOT NULL, 
	status VARCHAR NOT NULL, 
	title VARCHAR NOT NULL, 
	details TEXT NOT NULL, 
	answer_schema TEXT, 
	assigned_to VARCHAR, 
	created_by VARCHAR, 
	created_at VARCHAR(32) NOT NULL, 
	resolved_by VARCHAR, 
	resolved_at VARCHAR(32), 
	resolution TEXT, 
	note VARCHAR, 
	CONSTRAINT pk_processing_issues PRIMARY KEY (id), 
	CONSTRAINT ck_processing_issues_severity CHECK (severity IN ('info', 'warning', 'error', 'critical')), 
	CONSTRAINT ck_processing_issues_status CHECK (status IN ('open', 'resolved', 'withdrawn'))
);

CREATE INDEX ix_processing_issues_org ON processing_issues (org_id, created_at, id);

CREATE INDEX ix_processing_issues_job ON processing_issues (job_id, position);

CREATE INDEX ix_processing_issues_entity ON processing_issues (org_id, processable_type, processable_id);

CREATE INDEX ix_processing_issues_open ON processing_issues (org_id, created_at, id) WHERE status = 'open';

CREATE TABLE processing_callbacks (
	id VARCHAR(36) NOT NULL, 
	org_id VARCHAR(36) NOT NULL, 
	message_id VARCHAR, 
	job_id VARCHAR(36), 
	position SMALLINT, 
	epoch INTEGER, 
	payload TEXT NOT NULL, 
	outcome VARCHAR NOT NULL, 
	received_at VARCHAR(32) NOT NULL, 
	settled_at VARCHAR(32), 
	CONSTRAINT pk_processing_callbacks PRIMARY KEY (id), 
	CONSTRAINT ck_processing_callbacks_outcome CHECK (outcome IN ('received', 'applied', 'noted', 'duplicate', 'late', 'unknown', 'refused'))
);

CREATE INDEX ix_processing_callbacks_job ON processing_callbacks (job_id, position);

CREATE INDEX ix_processing_callbacks_received ON processing_callbacks (job_id, position) WHERE outcome = 'received';

CREATE TABLE installation_secrets (
	name VARCHAR NOT NULL, 
	value BLOB NOT NULL, 
	created_at VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_installation_secrets PRIMARY KEY (name)
);

CREATE TABLE ai_prompts (
	id VARCHAR(36) NOT NULL, 
	org_id VARCHAR(36) NOT NULL, 
	name VARCHAR NOT NULL, 
	version INTEGER NOT NULL, 
	text TEXT NOT NULL, 
	description VARCHAR NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	created_by VARCHAR, 
	created_at VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_ai_prompts PRIMARY KEY (id), 
	CONSTRAINT uq_ai_prompts_org_id_name_version UNIQUE (org_id, name, version)
);

CREATE TABLE process_template_steps (
	template_id VARCHAR(36) NOT NULL, 
	position SMALLINT NOT NULL, 
	org_id VARCHAR(36) NOT NULL, 
	step_key VARCHAR NOT NULL, 
	display_name VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	step_type VARCHAR NOT NULL, 
	pool VARCHAR NOT NULL, 
	execution_group INTEGER NOT NULL, 
	step_order INTEGER NOT NULL, 
	depends_on TEXT NOT NULL, 
	optional BOOLEAN NOT NULL, 
	on_failure_action VARCHAR NOT NULL, 
	processor_method TEXT NOT NULL, 
	compensation_method VARCHAR, 
	prompt VARCHAR, 
	CONSTRAINT pk_process_template_steps PRIMARY KEY (template_id, position), 
	CONSTRAINT uq_process_template_steps_template_id_step_key UNIQUE (template_id, step_key), 
	CONSTRAINT fk_process_template_steps_template_id FOREIGN KEY(template_id) REFERENCES process_templates (id) ON DELETE CASCADE, 
	CONSTRAINT ck_process_template_steps_kind CHECK (kind IN ('ai', 'rule', 'system', 'external', 'human')), 
	CONSTRAINT ck_process_template_steps_on_failure_action CHECK (on_failure_action IN ('fail_job', 'skip_dependents', 'continue'))
)
 WITHOUT ROWID;

CREATE TABLE ai_breakers (
	name VARCHAR NOT NULL, 
	state VARCHAR NOT NULL, 
	failures INTEGER NOT NULL, 
	opened_at VARCHAR(32), 
	probe_until VARCHAR(32), 
	CONSTRAINT pk_ai_breakers PRIMARY KEY (name), 
	CONSTRAINT ck_ai_breakers_state CHECK (state IN ('closed', 'open', 'half_open'))
);

CREATE TABLE ai_buckets (
	name VARCHAR NOT NULL, 
	tokens DOUBLE NOT NULL, 
	updated_at VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_ai_buckets PRIMARY KEY (name)
);

CREATE TABLE ai_budgets (
	org_id VARCHAR(36) NOT NULL, 
	period VARCHAR NOT NULL, 
	spent_nanos BIGINT NOT NULL, 
	CONSTRAINT pk_ai_budgets PRIMARY KEY (org_id, period)
);

CREATE TABLE documents (
	id VARCHAR(36) NOT NULL, 
	org_id VARCHAR(36) NOT NULL, 
	run_id VARCHAR(36), 
	file_name VARCHAR NOT NULL, 
	source VARCHAR, 
	sha256 VARCHAR(64), 
	size BIGINT, 
	format VARCHAR, 
	status VARCHAR NOT NULL, 
	schema_asked VARCHAR NOT NULL, 
	schema_asked_version VARCHAR NOT NULL, 
	schema_name VARCHAR, 
	schema_version VARCHAR, 
	variant VARCHAR NOT NULL, 
	document_type VARCHAR, 
	confidence DOUBLE, 
	original_key VARCHAR(64), 
	original_expires_at VARCHAR(32), 
	original_expired_at VARCHAR(32), 
	reading_key VARCHAR(64), 
	extraction_key VARCHAR(64), 
	duplicate_of VARCHAR(36), 
	job_id VARCHAR(36), 
	error_code VARCHAR, 
	error_message VARCHAR, 
	locked TEXT NOT NULL, 
	outputs TEXT NOT NULL, 
	created_at VARCHAR(32) NOT NULL, 
	finished_at VARCHAR(32), words_of VARCHAR(64), 
	CONSTRAINT pk_documents PRIMARY KEY (id), 
	CONSTRAINT ck_documents_status CHECK (status IN ('queued', 'processing', 'completed', 'failed', 'duplicate'))
);

CREATE INDEX ix_documents_org ON documents (org_id, created_at, id);

CREATE INDEX ix_documents_sha256 ON documents (org_id, sha256);

CREATE UNIQUE INDEX uq_documents_run ON documents (run_id, source, sha256) WHERE run_id IS NOT NULL;

CREATE INDEX ix_documents_unfinished ON documents (id) WHERE status IN ('queued', 'processing');

CREATE INDEX ix_documents_expiring ON documents (original_expires_at) WHERE original_expires_at IS NOT NULL AND original_expired_at IS NULL;

CREATE INDEX ix_documents_original ON documents (original_key);

CREATE TABLE processed_documents (
	org_id VARCHAR(36) NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	schema_name VARCHAR NOT NULL, 
	schema_version VARCHAR NOT NULL, 
	variant VARCHAR NOT NULL, 
	document_id VARCHAR(36) NOT NULL, 
	job_id VARCHAR(36) NOT NULL, 
	extraction_key VARCHAR(64), 
	created_at VARCHAR(32) NOT NULL, 
	completed_at VARCHAR(32), 
	expires_at VARCHAR(32), 
	CONSTRAINT pk_processed_documents PRIMARY KEY (org_id, sha256, schema_name, schema_version, variant)
);

CREATE INDEX ix_processed_documents_expires ON processed_documents (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE document_runs (
	id VARCHAR(36) NOT NULL, 
	org_id VARCHAR(36) NOT NULL, 
	"key" VARCHAR(64) NOT NULL, 
	created_at VARCHAR(32) NOT NULL, 
	finished_at VARCHAR(32), 
	CONSTRAINT pk_document_runs PRIMARY KEY (id)
);

CREATE UNIQUE INDEX uq_document_runs_open ON document_runs (org_id, "key") WHERE finished_at IS NULL;

CREATE TABLE ai_calls (
	id VARCHAR(36) NOT NULL, 
	org_id VARCHAR(36) NOT NULL, 
	job_id VARCHAR(36), 
	position SMALLINT, 
	step_key VARCHAR, 
	attempt INTEGER, 
	provider VARCHAR NOT NULL, 
	model VARCHAR NOT NULL, 
	prompt_id VARCHAR(36), 
	outcome VARCHAR NOT NULL, 
	error_code VARCHAR, 
	input_tokens INTEGER NOT NULL, 
	output_tokens INTEGER NOT NULL, 
	cost_nanos BIGINT NOT NULL, 
	priced BOOLEAN NOT NULL, 
	reserved_nanos BIGINT NOT NULL, 
	expires_at VARCHAR(32) NOT NULL, 
	duration_ms INTEGER NOT NULL, 
	created_at VARCHAR(32) NOT NULL, 
	cached_tokens INTEGER DEFAULT 0 NOT NULL, 
	CONSTRAINT pk_ai_calls PRIMARY KEY (id), 
	CONSTRAINT ck_ai_calls_outcome CHECK (outcome IN ('asked', 'answered', 'failed', 'lost', 'cached'))
);

CREATE INDEX ix_ai_calls_org ON ai_calls (org_id, created_at);

CREATE INDEX ix_ai_calls_asked ON ai_calls (org_id) WHERE outcome = 'asked';

CREATE INDEX ix_ai_calls_job ON ai_calls (job_id);

CREATE TABLE ai_responses (
	"key" VARCHAR(64) NOT NULL, 
	org_id VARCHAR(36) NOT NULL, 
	call_id VARCHAR(36) NOT NULL, 
	provider VARCHAR NOT NULL, 
	model VARCHAR NOT NULL, 
	text VARCHAR, 
	created_at VARCHAR(32) NOT NULL, 
	expires_at VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_ai_responses PRIMARY KEY ("key")
);

CREATE INDEX ix_ai_responses_expires ON ai_responses (expires_at);

CREATE TABLE leaving_blobs (
	"key" VARCHAR(64) NOT NULL, 
	claimed_at VARCHAR(32), 
	CONSTRAINT pk_leaving_blobs PRIMARY KEY ("key")
);

CREATE TABLE review_items (
	id VARCHAR(36) NOT NULL, 
	org_id VARCHAR(36) NOT NULL, 
	document_id VARCHAR(36) NOT NULL, 
	round INTEGER NOT NULL, 
	job_id VARCHAR(36), 
	schema_name VARCHAR NOT NULL, 
	schema_version VARCHAR NOT NULL, 
	document_type VARCHAR, 
	extraction_key VARCHAR(64) NOT NULL, 
	options TEXT NOT NULL, 
	cut TEXT NOT NULL, 
	status VARCHAR NOT NULL, 
	version INTEGER NOT NULL, 
	assigned_to VARCHAR NOT NULL, 
	claimed_by VARCHAR NOT NULL, 
	claimed_at VARCHAR(32), 
	claim_expires_at VARCHAR(32), 
	postponed_until VARCHAR(32), 
	confidence DOUBLE NOT NULL, 
	complexity DOUBLE NOT NULL, 
	value DOUBLE NOT NULL, 
	standing DOUBLE NOT NULL, 
	queue_class BIGINT NOT NULL, 
	place DOUBLE NOT NULL, 
	fields_total INTEGER NOT NULL, 
	fields_to_review INTEGER NOT NULL, 
	sla_state VARCHAR NOT NULL, 
	sla_at VARCHAR(32), 
	due_at VARCHAR(32), 
	created_at VARCHAR(32) NOT NULL, 
	updated_at VARCHAR(32) NOT NULL, 
	decided_at VARCHAR(32), 
	decided_by VARCHAR, 
	automatic BOOLEAN NOT NULL, 
	reason VARCHAR, superseded_by VARCHAR(36), 
	CONSTRAINT pk_review_items PRIMARY KEY (id), 
	CONSTRAINT ck_review_items_status CHECK (status IN ('pending', 'in_review', 'approved', 'corrected', 'rejected')), 
	CONSTRAINT ck_review_items_sla_state CHECK (sla_state IN ('none', 'on_track', 'at_risk', 'overdue'))
);

CREATE INDEX ix_review_items_sla ON review_items (sla_at, org_id) WHERE sla_at IS NOT NULL;

CREATE INDEX ix_review_items_claims ON review_items (claim_expires_at, org_id) WHERE status = 'in_review';

CREATE INDEX ix_review_items_postponed ON review_items (postponed_until, org_id) WHERE postponed_until IS NOT NULL;

CREATE UNIQUE INDEX uq_review_items_round ON review_items (document_id, round);

CREATE INDEX ix_review_items_org ON review_items (org_id, created_at, id);

CREATE TABLE extracted_fields (
	item_id VARCHAR(36) NOT NULL, 
	path VARCHAR NOT NULL, 
	org_id VARCHAR(36) NOT NULL, 
	position INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	row_index INTEGER, 
	column_name VARCHAR NOT NULL, 
	value VARCHAR, 
	extracted VARCHAR, 
	confidence DOUBLE, 
	threshold DOUBLE NOT NULL, 
	required BOOLEAN NOT NULL, 
	needs_review BOOLEAN NOT NULL, 
	state VARCHAR NOT NULL, 
	locked BOOLEAN NOT NULL, 
	proposed VARCHAR, 
	differs BOOLEAN NOT NULL, 
	details TEXT NOT NULL, 
	changed_by VARCHAR, 
	changed_at VARCHAR(32), 
	CONSTRAINT pk_extracted_fields PRIMARY KEY (item_id, path), 
	CONSTRAINT ck_extracted_fields_state CHECK (state IN ('extracted', 'confirmed', 'corrected', 'added', 'cleared'))
);

CREATE TABLE field_history (
	id VARCHAR(36) NOT NULL, 
	org_id VARCHAR(36) NOT NULL, 
	item_id VARCHAR(36) NOT NULL, 
	change_id VARCHAR(36) NOT NULL, 
	path VARCHAR NOT NULL, 
	action VARCHAR NOT NULL, 
	"before" TEXT, 
	"after" TEXT, 
	"by" VARCHAR NOT NULL, 
	by_name VARCHAR NOT NULL, 
	at VARCHAR(32) NOT NULL, 
	undone_at VARCHAR(32), 
	CONSTRAINT pk_field_history PRIMARY KEY (id)
);

CREATE INDEX ix_field_history_item ON field_history (item_id, id);

CREATE TABLE review_comments (
	id VARCHAR(36) NOT NULL, 
	org_id VARCHAR(36) NOT NULL, 
	item_id VARCHAR(36) NOT NULL, 
	path VARCHAR, 
	body VARCHAR NOT NULL, 
	"by" VARCHAR NOT NULL, 
	by_name VARCHAR NOT NULL, 
	at VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_review_comments PRIMARY KEY (id)
);

CREATE INDEX ix_review_comments_item ON review_comments (item_id, id);

CREATE TABLE review_settings (
	org_id VARCHAR(36) NOT NULL, 
	schema_name VARCHAR NOT NULL, 
	sla_seconds BIGINT NOT NULL, 
	updated_by VARCHAR NOT NULL, 
	updated_at VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_review_settings PRIMARY KEY (org_id, schema_name)
);

CREATE TABLE reviewers (
	org_id VARCHAR(36) NOT NULL, 
	reviewer VARCHAR NOT NULL, 
	turn BIGINT NOT NULL, 
	CONSTRAINT pk_reviewers PRIMARY KEY (org_id, reviewer)
);

CREATE INDEX ix_documents_duplicate_of ON documents (duplicate_of) WHERE duplicate_of IS NOT NULL;

CREATE TABLE organisations (
	id VARCHAR(36) NOT NULL, 
	name VARCHAR NOT NULL, 
	created_at VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_organisations PRIMARY KEY (id), 
	CONSTRAINT uq_organisations_name UNIQUE (name)
);

CREATE TABLE users (
	id VARCHAR(36) NOT NULL, 
	email VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	password VARCHAR, 
	created_at VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_users PRIMARY KEY (id), 
	CONSTRAINT uq_users_email UNIQUE (email)
);

CREATE TABLE memberships (
	org_id VARCHAR(36) NOT NULL, 
	user_id VARCHAR(36) NOT NULL, 
	role VARCHAR NOT NULL, 
	created_at VARCHAR(32) NOT NULL, 
	created_by VARCHAR NOT NULL, 
	CONSTRAINT pk_memberships PRIMARY KEY (org_id, user_id), 
	CONSTRAINT fk_memberships_org_id FOREIGN KEY(org_id) REFERENCES organisations (id), 
	CONSTRAINT fk_memberships_user_id FOREIGN KEY(user_id) REFERENCES users (id), 
	CONSTRAINT ck_memberships_role CHECK (role IN ('owner', 'admin', 'reviewer', 'viewer', 'service'))
);

CREATE INDEX ix_memberships_user ON memberships (user_id);

CREATE TABLE invitations (
	id VARCHAR(36) NOT NULL, 
	org_id VARCHAR(36) NOT NULL, 
	token_hash VARCHAR(64) NOT NULL, 
	email VARCHAR NOT NULL, 
	role VARCHAR NOT NULL, 
	resets BOOLEAN DEFAULT 0 NOT NULL, 
	created_at VARCHAR(32) NOT NULL, 
	created_by VARCHAR NOT NULL, 
	expires_at VARCHAR(32) NOT NULL, 
	used_at VARCHAR(32), 
	CONSTRAINT pk_invitations PRIMARY KEY (id), 
	CONSTRAINT uq_invitations_token_hash UNIQUE (token_hash), 
	CONSTRAINT fk_invitations_org_id FOREIGN KEY(org_id) REFERENCES organisations (id), 
	CONSTRAINT ck_invitations_role CHECK (role IN ('owner', 'admin', 'reviewer', 'viewer', 'service'))
);

CREATE INDEX ix_invitations_org ON invitations (org_id, created_at);

CREATE TABLE sessions (
	token_hash VARCHAR(64) NOT NULL, 
	org_id VARCHAR(36) NOT NULL, 
	user_id VARCHAR(36) NOT NULL, 
	created_at VARCHAR(32) NOT NULL, 
	seen_at VARCHAR(32) NOT NULL, 
	expires_at VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_sessions PRIMARY KEY (token_hash), 
	CONSTRAINT fk_sessions_membership FOREIGN KEY(org_id, user_id) REFERENCES memberships (org_id, user_id) ON DELETE CASCADE
);

CREATE INDEX ix_sessions_user ON sessions (org_id, user_id);

CREATE INDEX ix_sessions_expires ON sessions (expires_at);

CREATE TABLE api_keys (
	id VARCHAR(36) NOT NULL, 
	org_id VARCHAR(36) NOT NULL, 
	name VARCHAR NOT NULL, 
	hint VARCHAR NOT NULL, 
	token_hash VARCHAR(64) NOT NULL, 
	role VARCHAR NOT NULL, 
	scopes TEXT NOT NULL, 
	created_at VARCHAR(32) NOT NULL, 
	created_by VARCHAR NOT NULL, 
	expires_at VARCHAR(32), 
	used_at VARCHAR(32), 
	revoked_at VARCHAR(32), 
	CONSTRAINT pk_api_keys PRIMARY KEY (id), 
	CONSTRAINT uq_api_keys_token_hash UNIQUE (token_hash), 
	CONSTRAINT fk_api_keys_org_id FOREIGN KEY(org_id) REFERENCES organisations (id), 
	CONSTRAINT ck_api_keys_role CHECK (role IN ('owner', 'admin', 'reviewer', 'viewer', 'service'))
);

CREATE INDEX ix_api_keys_org ON api_keys (org_id, created_at);

CREATE TABLE sign_in_limits (
	name VARCHAR(64) NOT NULL, 
	failures INTEGER DEFAULT 0 NOT NULL, 
	until VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_sign_in_limits PRIMARY KEY (name)
);

CREATE INDEX ix_sign_in_limits_until ON sign_in_limits (until);

CREATE TABLE audit_log (
	org_id VARCHAR(36) NOT NULL, 
	number INTEGER NOT NULL, 
	at VARCHAR(32) NOT NULL, 
	actor_kind VARCHAR NOT NULL, 
	actor_id VARCHAR NOT NULL, 
	actor_name VARCHAR NOT NULL, 
	action VARCHAR NOT NULL, 
	subject_type VARCHAR NOT NULL, 
	subject_id VARCHAR NOT NULL, 
	"before" TEXT, 
	"after" TEXT, 
	hash BLOB NOT NULL, 
	CONSTRAINT pk_audit_log PRIMARY KEY (org_id, number)
)
 WITHOUT ROWID;

CREATE INDEX ix_audit_log_subject ON audit_log (org_id, subject_type, subject_id, number);

CREATE TABLE audit_heads (
	org_id VARCHAR(36) NOT NULL, 
	number INTEGER NOT NULL, 
	hash BLOB NOT NULL, 
	CONSTRAINT pk_audit_heads PRIMARY KEY (org_id)
);

CREATE TRIGGER audit_log_no_update BEFORE UPDATE ON audit_log BEGIN SELECT RAISE(ABORT, 'the audit log is only ever added to'); END;

CREATE TRIGGER audit_log_no_delete BEFORE DELETE ON audit_log BEGIN SELECT RAISE(ABORT, 'the audit log is only ever added to'); END;

CREATE TABLE idempotency_keys (
	org_id VARCHAR(36) NOT NULL, 
	who VARCHAR NOT NULL, 
	"key" VARCHAR(255) NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	status SMALLINT, 
	body TEXT, 
	begun_at VARCHAR(32) NOT NULL, 
	expires_at VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_idempotency_keys PRIMARY KEY (org_id, who, "key")
);

CREATE INDEX ix_idempotency_keys_expires ON idempotency_keys (expires_at);

CREATE TABLE document_words (
	org_id VARCHAR(36) NOT NULL, 
	word VARCHAR(64) NOT NULL, 
	document_id VARCHAR(36) NOT NULL, 
	CONSTRAINT pk_document_words PRIMARY KEY (org_id, word, document_id)
);

CREATE INDEX ix_document_words_document ON document_words (document_id);

CREATE INDEX ix_documents_unindexed ON documents (org_id, id) WHERE extraction_key IS NOT NULL AND words_of IS NOT extraction_key;

CREATE INDEX ix_processing_job_events_org ON processing_job_events (org_id, at);

CREATE TABLE webhook_endpoints (
	id VARCHAR(36) NOT NULL, 
	org_id VARCHAR(36) NOT NULL, 
	url VARCHAR NOT NULL, 
	description VARCHAR NOT NULL, 
	events TEXT NOT NULL, 
	"key" BLOB NOT NULL, 
	old_key BLOB, 
	old_key_until VARCHAR(32), 
	enabled BOOLEAN NOT NULL, 
	disabled_reason VARCHAR, 
	version INTEGER NOT NULL, 
	told_from VARCHAR(32) NOT NULL, 
	told_until VARCHAR(32) NOT NULL, 
	created_by VARCHAR NOT NULL, 
	created_at VARCHAR(32) NOT NULL, 
	updated_at VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_webhook_endpoints PRIMARY KEY (id)
);

CREATE INDEX ix_webhook_endpoints_org ON webhook_endpoints (org_id, id);

CREATE TABLE webhook_deliveries (
	id VARCHAR(36) NOT NULL, 
	org_id VARCHAR(36) NOT NULL, 
	endpoint_id VARCHAR(36) NOT NULL, 
	event VARCHAR NOT NULL, 
	event_key VARCHAR NOT NULL, 
	body TEXT NOT NULL, 
	status VARCHAR NOT NULL, 
	attempts INTEGER NOT NULL, 
	tries INTEGER NOT NULL, 
	due_at VARCHAR(32), 
	created_at VARCHAR(32) NOT NULL, 
	settled_at VARCHAR(32), 
	CONSTRAINT pk_webhook_deliveries PRIMARY KEY (id), 
	CONSTRAINT fk_webhook_deliveries_endpoint_id FOREIGN KEY(endpoint_id) REFERENCES webhook_endpoints (id) ON DELETE CASCADE, 
	CONSTRAINT uq_webhook_deliveries_endpoint_id_event_key UNIQUE (endpoint_id, event_key), 
	CONSTRAINT ck_webhook_deliveries_event CHECK (event IN ('document.finished', 'document.failed', 'job.finished', 'job.failed', 'review.decided', 'review.sla_at_risk', 'ping')), 
	CONSTRAINT ck_webhook_deliveries_status CHECK (status IN ('pending', 'delivered', 'failed'))
);

CREATE INDEX ix_webhook_deliveries_endpoint ON webhook_deliveries (endpoint_id, id);

CREATE INDEX ix_webhook_deliveries_settled ON webhook_deliveries (settled_at);

CREATE INDEX ix_webhook_deliveries_due ON webhook_deliveries (due_at, id) WHERE due_at IS NOT NULL;

CREATE TABLE webhook_attempts (
	delivery_id VARCHAR(36) NOT NULL, 
	number INTEGER NOT NULL, 
	org_id VARCHAR(36) NOT NULL, 
	at VARCHAR(32) NOT NULL, 
	milliseconds BIGINT NOT NULL, 
	answered INTEGER, 
	error VARCHAR, 
	CONSTRAINT pk_webhook_attempts PRIMARY KEY (delivery_id, number), 
	CONSTRAINT fk_webhook_attempts_delivery_id FOREIGN KEY(delivery_id) REFERENCES webhook_deliveries (id) ON DELETE CASCADE
);

CREATE INDEX ix_review_items_queue ON review_items (org_id, assigned_to, queue_class, place, id) WHERE status = 'pending' AND postponed_until IS NULL AND superseded_by IS NULL;

CREATE INDEX ix_review_items_open ON review_items (org_id, queue_class, place, id) WHERE status IN ('pending', 'in_review') AND superseded_by IS NULL;

CREATE INDEX ix_review_items_load ON review_items (org_id, assigned_to) WHERE status IN ('pending', 'in_review') AND superseded_by IS NULL;

CREATE UNIQUE INDEX uq_review_items_undecided ON review_items (document_id) WHERE status IN ('pending', 'in_review') AND superseded_by IS NULL;

CREATE INDEX ix_review_items_superseded ON review_items (superseded_by) WHERE superseded_by IS NOT NULL;

CREATE INDEX ix_audit_log_actor ON audit_log (org_id, actor_id, number);

