"""What an order costs, in cents."""


def price(cents, count, customer, code=None):
    """The price of so many pieces, with all discounts."""
    total = cents * count
    if customer == "staff":
        total -= total * 30 // 100
        if code == "SPRING":
            total -= 500
            if total < 0:
                total = 0
    elif customer == "reseller":
        if count >= 100:
            total -= total * 20 // 100
        else:
            if count >= 10:
                total -= total * 10 // 100
        if code == "SPRING":
            total -= 500
            if total < 0:
                total = 0
    else:
        if code == "SPRING":
            total -= 500
            if total < 0:
                total = 0
    return total
