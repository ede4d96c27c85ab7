create table hello_guests (id text primary key, name text not null);
create table hello_greetings (job_id text not null, guest_id text not null, text text not null);
