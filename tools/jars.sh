#!/usr/bin/env bash
# Fetches the jars of a server from Maven Central, once, into the user's cache, and says where they
# are: `tools/jars.sh kafka` a broker, `tools/jars.sh schema-registry` a registry (Apicurio, which
# speaks Confluent's REST interface). tools/kafka.py and tools/schema_registry.py run them.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/cache.sh

case ${1-} in
kafka)
    title="Kafka 4.1.0" size="43 MB" jars=$cache/kafka-4.1.0
    artifact=org.apache.kafka:kafka_2.13:4.1.0
    ;;
schema-registry)
    title="the schema registry 3.0.9" size="109 MB" jars=$cache/apicurio-registry-3.0.9
    artifact=io.apicurio:apicurio-registry-app:3.0.9:tar.gz:all
    ;;
*)
    echo "$0: must be told which server; got '${1-}'. Say kafka or schema-registry." >&2
    exit 2
    ;;
esac

if [ -d "$jars" ]; then
    echo "$jars"
    exit
fi
if ! command -v mvn >/dev/null; then
    echo "Installing Debian's package maven, once" >&2
    install_package maven >&2 || true
fi
if ! command -v mvn >/dev/null; then
    echo "Jars of $title: they come from Maven Central by mvn; got no mvn. Install Maven (Debian:" \
        "apt-get install maven), or put those of $artifact in $jars." >&2
    exit 2
fi

make_build_folder
mkdir "$build/jars"

fetch_kafka() {
    cat >"$build/pom.xml" <<END
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>tidegate</groupId>
  <artifactId>broker</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>4.1.0</version>
    </dependency>
    <dependency> <!-- of the interface that this Kafka logs through -->
      <groupId>org.slf4j</groupId>
      <artifactId>slf4j-simple</artifactId>
      <version>1.7.36</version>
    </dependency>
  </dependencies>
</project>
END
    mvn --batch-mode --quiet --file "$build/pom.xml" dependency:copy-dependencies \
        -DincludeScope=runtime -DoutputDirectory="$build/jars"
}

fetch_schema-registry() {
    mvn --batch-mode --quiet dependency:copy -Dartifact="$artifact" -DoutputDirectory="$build" \
        -Dmdep.useBaseVersion=true && tar -xzf "$build"/*.tar.gz -C "$build/jars"
}

echo "Fetching $title: $size, once" >&2
if ! "fetch_$1" >"$build/log" 2>&1; then
    cat "$build/log" >&2
    echo "Jars of $title: they must come from Maven Central; got the failure above. Run it again." >&2
    exit 1
fi
put_into_cache "$build/jars" "$jars"
echo "$jars"
