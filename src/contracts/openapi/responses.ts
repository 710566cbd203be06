import type { Method } from '../method.ts'
import { type ApiBundle, below, dereferenced, isObject, type Located, membersOf } from './bundle.ts'

/** TRACE would show a client fields that the gateway adds (RFC 9110 §9.3.8). */
export const documentMethods: readonly (readonly [member: string, method: Method])[] = [
  ['get', 'GET'],
  ['head', 'HEAD'],
  ['post', 'POST'],
  ['put', 'PUT'],
  ['patch', 'PATCH'],
  ['delete', 'DELETE'],
  ['options', 'OPTIONS'],
]

/** Path without a query or fragment, by which some documents distinguish operations. */
export const barePath = (key: string): string => key.replace(/[?#].*$/s, '')

/** Names an operation among those of its document. */
export const operationKey = ({
  method,
  template,
}: {
  readonly method: string
  readonly template: string
}): string => `${method} ${template}`

/** Where each operation is described; the first of several with one method and path. */
export const locateOperations = (bundle: ApiBundle): ReadonlyMap<string, Located> => {
  const found = new Map<string, Located>()
  const paths = below({ file: bundle.root, path: [], node: bundle.files[bundle.root] }, 'paths')
  for (const [key] of membersOf(paths.node)) {
    const path = dereferenced(bundle, below(paths, key))
    if (path === undefined || !key.startsWith('/')) continue
    for (const [name, method] of documentMethods) {
      const located = below(path, name)
      const position = operationKey({ method, template: barePath(key) })
      if (isObject(located.node) && !found.has(position)) found.set(position, located)
    }
  }
  return found
}

/** The description of the response with a status: the status itself before its class (`2XX`) before `default`. */
export const responseFor = (bundle: ApiBundle, operation: Located, status: number): Located | undefined => {
  const responses = below(operation, 'responses')
  const names = [String(status), `${Math.floor(status / 100)}XX`, `${Math.floor(status / 100)}xx`, 'default']
  const name = names.find((one) => below(responses, one).node !== undefined)
  return name === undefined ? undefined : dereferenced(bundle, below(responses, name))
}
