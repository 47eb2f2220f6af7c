"""An agent's secrets, sealed by other programs: what every browser must be able to open."""

from __future__ import annotations

from typing import Any

#: A key that everybody knows, with the address and the ciphertexts that other programs made with it.
KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
ADDRESS = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
SECRETS = {
    "llmApiKey": "sk-test",
    "executionWalletPrivateKey": "0x01",
    "alchemyApiKey": "alch",
    "githubIssueToken": "",
}
V1: dict[str, Any] = {
    "v": 1,
    "iv": "BwcHBwcHBwcHBwcH",
    "ciphertext": (
        "9Sra4bewaSoIVhOthFOhvSWr7X6Qn7sAavZ9bUtSQAWfgDx9K9A3ZcUGScpxLtUWKuYWit8xitutmrSxFloKoD9qSFXXnecLsg3Yp5yrH2gh"
        "MBXaSyf7uoUE6mSl5vkMKHcuNLl+8SgA1Ww9J0rR92P/Hj1cuYY="
    ),
}
V2: dict[str, Any] = {
    "v": 2,
    "iv": "LaxMCdiBC2jKlSv1",
    "ciphertext": (
        "G4V5VVm4aJdRpTDeYUF/idU9TxdGmEzN0VZcLJDQ0l3BHLJXOJ2SBvka/5wf2TnPwaY82+AR7xpKzcYtk5vIX4GhOvWzPlj7fPiKQZc8VvbV"
        "iusQQRzRHuRtgMKkHodqiHQ8TJRW/w05S4zrea3XgZR7sXY4gf4="
    ),
}

#: Sealed by the pages' own `secrets.js`, with this initialisation vector in the place of a random one.
OF_PAGES = {
    "llmApiKey": 'sk-\u0442\u0435\u0441\u0442-\N{KEY}"\\/\u2028',
    "executionWalletPrivateKey": "",
    "alchemyApiKey": "alch \u00e9",
    "githubIssueToken": "ghp_1",
}
PAGES_PASSWORD = "\u043f\u0430\u0440\u043e\u043b\u044c-\N{KEY}-long"
PAGES_IV = b"\t" * 12
SEALED_BY_PAGES: dict[str, Any] = {
    "v": 2,
    "iv": "CQkJCQkJCQkJCQkJ",
    "ciphertext": (
        "nYD9CT08JUIAJpncqK9L5uPlsna7uqsDozpEZdJL4fqDvsI+FVLWfrhkAxt3ZZGkNQjubh5z5DwKyPp4aqhH/Cl0RUmvHfz38qMjbXVQ0dOJ"
        "UeUW8Af43Xmf8ZOStUBtrVRjIkIv0pZDVD43U1ItjM5+k/xR+bIVGD4m/wnpIMBv5USePz7h/O50fck="
    ),
}
