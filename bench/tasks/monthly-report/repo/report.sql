-- For each customer: the orders of February 2024, what they are worth, and what was paid for them, all in cents.
-- Payments that were refunded do not count.
select
  customers.name as customer,
  count(orders.id) as orders,
  sum(orders.cents) as ordered,
  sum(payments.cents) as paid
from customers
join orders on orders.customer_id = customers.id
left join payments on payments.order_id = orders.id
where orders.day between '2024-02-01' and '2024-03-01'
  and payments.refunded = 0
group by customers.id
order by customers.name;
