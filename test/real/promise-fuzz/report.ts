import type { Shrunk } from './shrink.ts'
import type { Read } from './site-under-fuzz.ts'
import { type Operation, resolved, type Write } from './write.ts'

const operationText = ({ method, route, body }: Operation): string =>
  `${method} ${route}${body === undefined ? '' : ` ${JSON.stringify(body)}`}`

export const writeText = (write: Write): string => {
  switch (write.door) {
    case 'rest':
      return `${operationText(write.operation)}${write.style === 'json' ? '' : ` (${write.style})`}`
    case 'batch':
      return `batch: ${write.operations.map(operationText).join('; ')}`
    case 'upload':
      return `POST ${write.route} ${write.file}`
    case 'form':
      return `${write.method} ${write.path} ${JSON.stringify(write.headers)}`
    case 'xmlrpc':
      return `xmlrpc ${write.call} ${JSON.stringify(write.values)}`
    case 'raw':
      return `POST ${write.path} ${write.body} (${write.type})`
    case 'cron':
      return 'GET /wp-cron.php'
  }
}

export const readText = ({ route, caller }: Read): string => `GET ${route} (${caller})`

/** Where two responses differ first, with what each says there. */
export const difference = (stored: string, direct: string): string => {
  const walk = (a: unknown, b: unknown, path: string): string | undefined => {
    if (JSON.stringify(a) === JSON.stringify(b)) return undefined
    const isTree = (one: unknown): one is Record<string, unknown> => typeof one === 'object' && one !== null
    if (isTree(a) && isTree(b) && Array.isArray(a) === Array.isArray(b)) {
      for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
        const found = walk(a[key], b[key], `${path}.${key}`)
        if (found !== undefined) return found
      }
    }
    const [left, right] = [a, b].map((one) =>
      typeof one === 'string' ? one : (JSON.stringify(one) ?? 'nothing'),
    )
    const [was = '', is = ''] = [left, right]
    let same = 0
    while (same < was.length && was[same] === is[same]) same += 1
    const from = Math.max(0, same - 30)
    const cut = (text: string): string => text.slice(from, from + 160)
    return `${path}: stored ${JSON.stringify(cut(was))}, WordPress ${JSON.stringify(cut(is))}`
  }
  return walk(JSON.parse(stored), JSON.parse(direct), '') ?? 'nothing differs'
}

export const shrunkText = ({ writes, before, read, shown, direct, ids }: Shrunk): string => {
  const texts = writes.map((write) => writeText(resolved(write, ids) ?? write))
  const last = texts.pop() ?? ''
  const steps = [...texts, ...before.map((one) => readText(resolved(one, ids) ?? one)), readText(read), last]
  return [
    ...steps.map((step, at) => `  ${at + 1}. ${step}`),
    `  stale: ${readText(read)}: ${difference(shown, direct)}`,
  ].join('\n')
}
