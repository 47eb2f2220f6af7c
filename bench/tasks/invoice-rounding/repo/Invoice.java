import java.util.ArrayList;
import java.util.List;

/** What a customer has to pay. */
final class Invoice {
    private final String taxRate;
    private final List<Money> lines = new ArrayList<>();

    /** A tax rate such as "0.19". */
    Invoice(String taxRate) {
        this.taxRate = taxRate;
    }

    /** So much of something at a price. */
    void add(String quantity, String price) {
        lines.add(Money.of(price).times(quantity));
    }

    Money net() {
        Money sum = Money.of("0");
        for (Money line : lines) {
            sum = sum.plus(line);
        }
        return sum;
    }

    Money tax() {
        Money sum = Money.of("0");
        for (Money line : lines) {
            sum = sum.plus(line.times(taxRate));
        }
        return sum;
    }

    Money total() {
        return net().plus(tax());
    }
}
