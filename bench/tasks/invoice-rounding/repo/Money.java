/** An amount of money in cents. */
final class Money {
    private final double amount;

    private Money(double amount) {
        this.amount = amount;
    }

    /** An amount as people write it, such as "19.99". */
    static Money of(String text) {
        return new Money(Double.parseDouble(text));
    }

    Money plus(Money other) {
        return new Money(amount + other.amount);
    }

    /** A multiple of it, such as "0.19" or "3", rounded half up to cents. */
    Money times(String factor) {
        return new Money(Math.round(amount * Double.parseDouble(factor) * 100) / 100.0);
    }

    @Override
    public String toString() {
        return String.format("%.2f", amount);
    }
}
