set -e
mkdir -p build
javac -d build Money.java Invoice.java InvoiceTest.java
java -Xshare:auto -XX:TieredStopAtLevel=1 -cp build InvoiceTest
