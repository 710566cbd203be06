import { parseArgs } from 'node:util'
import { headLine, outcomeText } from './report.ts'
import { type Outcome, runRow } from './run-row.ts'
import { startNeighbours } from './scene.ts'
import { attacks } from './table.ts'

// npm run attack: every attack against its own gateway, one after the other.

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: [] },
    seconds: { type: 'string', default: '10' },
    json: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
  },
})

const print = (text: string): void => void process.stdout.write(`${text}\n`)

const main = async (): Promise<number> => {
  const seconds = Number(values.seconds)
  const chosen = attacks.filter(({ name }) => values.only.length === 0 || values.only.includes(name))
  const unknown = values.only.filter((name) => !attacks.some((row) => row.name === name))
  if (unknown.length > 0 || !(seconds > 0)) {
    print(unknown.length > 0 ? `no such attack: ${unknown.join(', ')}` : '--seconds takes a number')
    return 2
  }
  if (values.list) {
    for (const { name, description } of chosen) print(`${name.padEnd(34)}${description}`)
    return 0
  }
  const outcomes: Outcome[] = []
  const neighbours = await startNeighbours()
  try {
    if (!values.json) print(headLine())
    for (const row of chosen) {
      const outcome = await runRow(row, neighbours, { seconds, idleMs: 1_500, slackMs: 100 })
      outcomes.push(outcome)
      if (!values.json) print(outcomeText(outcome))
    }
  } finally {
    await neighbours.end()
  }
  const broken = outcomes.filter(({ verdict }) => verdict === 'BROKEN')
  const held = outcomes.filter(({ verdict }) => verdict === 'held')
  if (values.json) print(JSON.stringify(outcomes, null, 2))
  else
    print(
      `${held.length} held, ${broken.length} broken, ${outcomes.length - held.length - broken.length} not run`,
    )
  return broken.length === 0 ? 0 : 1
}

process.exitCode = await main()
