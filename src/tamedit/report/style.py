"""How the report looks: one column for reading, wide tables and figures scroll on a phone, plain when printed."""

CSS = """
:root { --ink: #1d2329; --soft: #57606a; --line: #d8dee4; --paper: #fff; --tint: #f5f7f9; --blue: #0072b2; --warn: #b34a00; }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-behavior: smooth; }
body { margin: 0 auto; padding: 0 1.25rem 3rem; max-width: 58rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  overflow-wrap: anywhere; }
h1 { margin: 2rem 0 .25rem; font-size: 1.9rem; line-height: 1.2; }
h2 { margin: 3rem 0 .75rem; padding-top: 1rem; border-top: 1px solid var(--line); font-size: 1.35rem; line-height: 1.3; }
h3 { margin: 1.75rem 0 .5rem; font-size: 1.05rem; }
p, ul, ol { max-width: 46rem; margin: .6rem 0; }
a { color: var(--blue); }
code { font: .9em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; background: var(--tint); padding: .1em .3em;
  border-radius: 3px; }
.lead { margin: 0; color: var(--soft); }
.note { color: var(--soft); font-size: .92rem; }
.warning { max-width: none; margin: 1.25rem 0; padding: .8rem 1rem; background: #fff4ec; border-left: 4px solid var(--warn); }
.statement { margin: 1rem 0; padding: .8rem 1rem; background: #eef6fb; border-left: 4px solid var(--blue); }
.statement p { max-width: none; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(11.5rem, 1fr)); gap: .75rem; margin: 1.25rem 0;
  padding: 0; }
.card { padding: .75rem .9rem; background: var(--tint); border: 1px solid var(--line); border-radius: 6px; }
.card dt { color: var(--soft); font-size: .85rem; }
.card dd { margin: .15rem 0 0; font-size: 1.3rem; font-weight: 600; line-height: 1.25; }
.card dd.more { font-size: .85rem; font-weight: 400; color: var(--soft); line-height: 1.4; }
nav ol { padding-left: 1.4rem; columns: 2 16rem; font-size: .95rem; }
.wide { overflow-x: auto; margin: 1rem 0 .4rem; }
.wide:focus-visible { outline: 2px solid var(--blue); outline-offset: 2px; }
figure { margin: 1.25rem 0; }
figure .wide { margin: 0; }
figure img { display: block; width: 100%; min-width: 34rem; height: auto; }
figcaption { max-width: 46rem; margin-top: .4rem; color: var(--soft); font-size: .9rem; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
caption { padding-bottom: .4rem; text-align: left; font-weight: 600; }
caption span { display: block; max-width: calc(100vw - 2rem); }
th, td { padding: .38rem .6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th:first-child { padding-left: .3rem; }
thead th { border-bottom: 2px solid var(--ink); vertical-align: bottom; font-size: .85rem; line-height: 1.35; }
tbody th { font-weight: 500; }
.number { text-align: right; white-space: nowrap; }
thead .number { white-space: normal; }
td.text { overflow-wrap: anywhere; min-width: 7.5rem; }
td.text:nth-child(5) { min-width: 16rem; }
.unit { display: block; white-space: nowrap; font-weight: 400; color: var(--soft); }
.range { display: block; color: var(--soft); font-size: .8rem; font-weight: 400; }
.best { display: inline-block; margin-right: .35rem; padding: 0 .35rem; border-radius: 3px; background: #d9efe7; color: #00543c;
  font-size: .75rem; font-weight: 600; }
.own th, .own td { background: #eef6fb; }
.own th { font-weight: 600; }
footer { margin-top: 3rem; padding-top: 1rem; border-top: 1px solid var(--line); color: var(--soft); font-size: .88rem; }
@media (max-width: 40rem) {
  body { padding: 0 1rem 2rem; }
  h1 { font-size: 1.5rem; }
  nav ol { columns: 1; }
  .wide { background: linear-gradient(to right, var(--paper) 1.5rem, #fff0), linear-gradient(to left, var(--paper) 1.5rem, #fff0)
    right, linear-gradient(to right, #0003, #0000), linear-gradient(to left, #0003, #0000) right; background-repeat: no-repeat;
    background-size: 3rem 100%, 3rem 100%, .7rem 100%, .7rem 100%; background-attachment: local, local, scroll, scroll; }
}
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav { display: none; }
  h2 { break-after: avoid; }
  figure, tr, .card, .warning, .statement { break-inside: avoid; }
  .wide { overflow: visible; }
  figure img { min-width: 0; max-width: 17cm; }
  table { font-size: 8.5pt; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""
