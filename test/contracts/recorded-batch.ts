import type { Script } from '../support/origin.ts'
import type { Recording } from './recording.ts'

type Item = {
  readonly status: number
  readonly body: unknown
  readonly headers: Readonly<Record<string, string>> | readonly never[]
}

/** For a batch: answers the requests its items have become with what was recorded of each item. */
export function itemReplay({ target, content }: Recording['request'], recorded: string): Script | undefined {
  if (target !== '/batch/v1' || content === undefined) return undefined
  const { requests } = JSON.parse(content) as { requests: { method?: string; path: string }[] }
  const { responses = [] } = JSON.parse(recorded) as { responses?: (Item | null)[] }
  const waiting = requests.map(({ method = 'POST', path }, index) => ({
    method,
    path: `/index.php/wp-json${path.split('?')[0]}`,
    item: responses[index],
  }))
  return (request, wire) => {
    const at = waiting.findIndex(
      ({ method, path }) => method === request.method && path === request.target.split('?')[0],
    )
    const [found] = at === -1 ? [] : waiting.splice(at, 1)
    if (found?.item === undefined || found.item === null) {
      wire.respond({ status: 500, content: 'an item that was never recorded' })
      return
    }
    const { status, headers, body } = found.item
    const fields = {
      ...Object.fromEntries(Object.entries(headers)),
      'Content-Type': 'application/json; charset=UTF-8',
    }
    wire.respond({ status, headers: fields, content: JSON.stringify(body) })
  }
}
