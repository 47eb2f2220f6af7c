public class InvoiceTest {
    private static int failures;

    private static void check(String what, Object got, String wanted) {
        if (!got.toString().equals(wanted)) {
            System.out.println("FAIL: " + what + ": " + got + ", not " + wanted);
            failures++;
        }
    }

    public static void main(String[] arguments) {
        check("halves are rounded up", Money.of("1.15").times("0.5"), "0.58");
        check("also where they have no binary form", Money.of("1.005").times("1"), "1.01");
        check("away from zero", Money.of("-1.15").times("0.5"), "-0.58");

        Money sum = Money.of("0");
        for (int number = 0; number < 1000; number++) {
            sum = sum.plus(Money.of("0.01"));
        }
        check("cents add up", sum, "10.00");
        check("large amounts are exact", Money.of("90071992547409.93").plus(Money.of("0.02")), "90071992547409.95");

        Invoice invoice = new Invoice("0.19");
        for (int number = 0; number < 3; number++) {
            invoice.add("1", "0.45");
        }
        check("net", invoice.net(), "1.35");
        check("tax is rounded once", invoice.tax(), "0.26");
        check("total", invoice.total(), "1.61");

        Invoice weighed = new Invoice("0.07");
        weighed.add("0.335", "3.00");
        weighed.add("2", "1.10");
        check("each line is rounded", weighed.net(), "3.21");
        check("and taxed", weighed.total(), "3.43");
        System.out.println(failures == 0 ? "all is well" : failures + " failures");
        System.exit(failures == 0 ? 0 : 1);
    }
}
