use calc::calculate;

#[test]
fn sums_and_products() {
    assert_eq!(calculate("1 + 2 * 3"), Ok(7.0));
    assert_eq!(calculate("(1 + 2) * 3"), Ok(9.0));
    assert_eq!(calculate("8 / 4 / 2"), Ok(1.0));
}

#[test]
fn differences_are_reckoned_from_the_left() {
    assert_eq!(calculate("10 - 4 - 3"), Ok(3.0));
    assert_eq!(calculate("10 - 4 + 3"), Ok(9.0));
}

#[test]
fn powers_are_reckoned_from_the_right() {
    assert_eq!(calculate("2 ^ 3 ^ 2"), Ok(512.0));
    assert_eq!(calculate("2 * 3 ^ 2"), Ok(18.0));
}

#[test]
fn a_sign_comes_after_a_power() {
    assert_eq!(calculate("-2 ^ 2"), Ok(-4.0));
    assert_eq!(calculate("2 ^ -1"), Ok(0.5));
    assert_eq!(calculate("2 * -3"), Ok(-6.0));
    assert_eq!(calculate("--3"), Ok(3.0));
}

#[test]
fn what_is_no_expression_is_told() {
    for text in ["", "1 +", "1 2", "(1", "1)", "1..2", "2 * / 3", "x"] {
        assert!(calculate(text).is_err(), "{text:?}");
    }
}
