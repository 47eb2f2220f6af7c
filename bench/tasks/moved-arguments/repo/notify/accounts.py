"""What customers are told about their accounts."""

from notify import mail


def welcome(user):
    mail.send(to=user["mail"], subject="Welcome", text=f"Hello {user['name']}.")


def locked(user):
    mail.send(user["mail"], "Your account", "Your account is locked.", urgent=True)
