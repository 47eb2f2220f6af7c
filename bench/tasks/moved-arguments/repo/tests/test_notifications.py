import unittest

from jobs import nightly
from notify import accounts, mail, orders
from notify.mail import Message

ORDER = {"id": 7, "mail": "ada@example.org"}
USER = {"name": "Ada", "mail": "ada@example.org"}


class Notifications(unittest.TestCase):
    def setUp(self):
        mail.outbox.clear()

    def sent(self):
        return list(mail.outbox)

    def test_orders(self):
        orders.shipped(ORDER)
        orders.delayed(ORDER, 1)
        late = Message("ada@example.org", "Order 7", "Your order is 1 day late.", urgent=True)
        sent = Message("ada@example.org", "Order 7", "Your order is on its way.")
        self.assertEqual(self.sent(), [late, sent])

    def test_accounts(self):
        accounts.welcome(USER)
        accounts.locked(USER)
        self.assertEqual([(m.subject, m.urgent) for m in self.sent()], [("Your account", True), ("Welcome", False)])

    def test_a_report_is_urgent_when_much_has_failed(self):
        nightly.report([])
        nightly.report(["a", "b"])
        nightly.report(["a", "b", "c"])
        self.assertEqual([m.urgent for m in self.sent()], [True, False])
        self.assertEqual(self.sent()[1].text, "- a\n- b")

    def test_reminders(self):
        nightly.remind([USER, USER])
        self.assertEqual([m.subject for m in self.sent()], ["Reminder", "Reminder"])


if __name__ == "__main__":
    unittest.main()
