// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

/// A small bank for demonstrations. Agents that test contracts find something of everything here: plain and payable
/// functions, an overload, views, reverts with a reason and with an error of its own, a panic, and one mistake that was
/// made on purpose (it is in `fee`).
contract Vault {
    /// An account holds less than was asked for.
    error TooLittle(uint256 available, uint256 wanted);

    event Counted(address indexed by, uint256 count);
    event Deposited(address indexed by, address indexed owner, uint256 amount, uint256 fee);
    event Withdrawn(address indexed owner, uint256 amount);

    struct Account {
        address owner;
        uint256 balance;
        uint256 deposits;
    }

    /// How often, or by how much, somebody counted.
    uint256 public count;
    /// What all deposits paid so far.
    uint256 public fees;

    mapping(address => Account) private accounts;

    /// Count by one.
    function inc() external {
        inc(1);
    }

    /// Count by `n`, which must not be zero.
    function inc(uint256 n) public {
        require(n > 0, "n=0");
        count += n;
        emit Counted(msg.sender, count);
    }

    /// Put money into one's own account.
    function deposit() external payable {
        put(msg.sender);
    }

    /// Put money into the account of `owner`.
    function deposit(address owner) external payable {
        require(owner != address(0), "owner is zero");
        put(owner);
    }

    /// Take money out of one's own account.
    function withdraw(uint256 amount) external {
        Account storage account = accounts[msg.sender];
        if (amount > account.balance) revert TooLittle(account.balance, amount);
        account.balance -= amount;
        emit Withdrawn(msg.sender, amount);
        (bool sent, ) = msg.sender.call{value: amount}("");
        require(sent, "not taken");
    }

    function balanceOf(address owner) external view returns (uint256) {
        return accounts[owner].balance;
    }

    function accountOf(address owner) external view returns (Account memory) {
        Account memory account = accounts[owner];
        account.owner = owner;
        return account;
    }

    /// What a deposit of `amount` costs: 3 per mille, rounded down.
    function fee(uint256 amount) public pure returns (uint256) {
        // The mistake: dividing first loses up to 999 wei of the amount, and deposits below 1000 wei are free.
        return amount / 1000 * 3;
    }

    function put(address owner) private {
        require(msg.value > 0, "nothing was sent");
        uint256 cost = fee(msg.value);
        Account storage account = accounts[owner];
        account.balance += msg.value - cost;
        account.deposits += 1;
        fees += cost;
        emit Deposited(msg.sender, owner, msg.value - cost, cost);
    }
}
