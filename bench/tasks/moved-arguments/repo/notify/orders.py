"""What customers are told about their orders."""

from notify.mail import send


def shipped(order):
    send(order["mail"], f"Order {order['id']}", "Your order is on its way.")


def delayed(order, days):
    unit = "day" if days == 1 else "days"
    send(order["mail"], f"Order {order['id']}", f"Your order is {days} {unit} late.", True)
