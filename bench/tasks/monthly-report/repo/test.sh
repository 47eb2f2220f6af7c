set -o pipefail
cat schema.sql data.sql report.sql | sqlite3 -csv -header :memory: | tr -d '\r' | diff expected.csv - && echo "all is well"
