// Reads [{language, text}, ...] from standard input and writes, for each, where its parser found a mistake: [[offset, ...], ...].
import { parser as logql } from "@grafana/lezer-logql";
import { parser as traceql } from "@grafana/lezer-traceql";
import { parser as promql } from "@prometheus-io/lezer-promql";
import { readFileSync } from "node:fs";

const parsers = { logql, promql, traceql };

function mistakes({ language, text }) {
  const found = [];
  parsers[language].parse(text).iterate({
    enter: (node) => {
      if (node.type.isError) found.push(node.from);
    },
  });
  return found;
}

console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(mistakes)));
