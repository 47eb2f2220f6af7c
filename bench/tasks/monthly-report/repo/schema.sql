create table customers (id integer primary key, name text not null);
create table orders (
  id integer primary key,
  customer_id integer not null references customers (id),
  day text not null, -- 2024-02-29
  cents integer not null
);
create table payments (
  id integer primary key,
  order_id integer not null references orders (id),
  cents integer not null,
  refunded integer not null default 0
);
