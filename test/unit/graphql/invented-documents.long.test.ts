import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { Requests } from '../../../src/graphql/requests.ts'
import type { ValidationInput } from '../../../src/service/contract.ts'
import { rowsOf } from '../../support/breadth.ts'

/** `INVENTED_DOCUMENTS=1000000` takes minutes. */
const count = Number(process.env['INVENTED_DOCUMENTS'] ?? 12_000)

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const heldMebibytes = (): number => {
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return (heapUsed + external) / 2 ** 20
}

const config = {
  ...{ maxDepth: 15, maxAliases: 50, maxTokens: 2_000, maxBytes: 65_536 },
  ...{ introspection: true, persisted: true, batch: 10, tags: 'partial' as const },
} as const

/** Of some kilobytes, as a client may make them: another document, name and hash each time. */
const invented = (nth: number, padding: string): ValidationInput => {
  const query = `query Invented${nth} { field${nth} ${padding} }`
  const content = Buffer.from(JSON.stringify({ query }))
  return { method: 'POST', query: '', content, headers: {} } as unknown as ValidationInput
}

test.each(
  rowsOf(
    [
      ['short ones', ''],
      ['long ones', 'name '.repeat(400)],
    ],
    2,
  ),
)(
  'what is remembered of invented documents has a bound: %s',
  (_, padding) => {
    const requests = new Requests(config, 64, () => ({ profile: 'safe', rule: undefined }) as never)
    const before = heldMebibytes()
    let most = 0
    for (let nth = 0; nth < count; nth += 1) {
      expect(requests.validate(invented(nth, padding)).kind).toBe('valid')
      if (nth % 4_000 === 3_999) most = Math.max(most, heldMebibytes() - before)
    }
    process.stdout.write(`${count} invented documents: ${Math.round(most)} MiB\n`)
    // Two memories of 8 MiB, of texts with what was made of them, and the third for hashes.
    expect(most).toBeLessThan(64)
    expect(requests.names.seen.length).toBeLessThanOrEqual(100)
  },
  3_600_000,
)
