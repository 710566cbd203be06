// `fetch` of the tests is that of Node with its own undici. The first undici that a process loads is that of its `fetch`, and the one of
// the gateway ends the process when a connection ends while a response is paused (nodejs/undici#5360), which only the gateway's own
// connections prevent.
await fetch('data:,')
