import type { Found } from '../../contracts/finding.ts'
import type { Row } from '../../contracts/row.ts'
import { type ErrorCode, type ErrorFacts, errorTable } from '../../errors.ts'
import type { LocalRequest, Service } from '../../pipeline/service.ts'
import type { Admission, BatchItem } from '../item.ts'

type Refusal = Extract<Admission, { kind: 'refused' }>

const refused = (status: number, code: string, message: string): Refusal => ({
  kind: 'refused',
  status,
  body: { code, message, data: { status } },
})

const refusedBy = (code: ErrorCode): Admission => {
  const { status, message, siteCode }: ErrorFacts = errorTable[code]
  return refused(status, siteCode ?? `trellis_${code}`, message)
}

/** WordPress lists the methods that the caller may use; only WordPress can check a credential, so any is taken for a valid one. */
const allowField = (row: Row, hasCredential: boolean): readonly string[] => {
  const methods = row.endpoints.flatMap((endpoint) => endpoint.methods)
  const allowed = hasCredential ? methods : methods.filter((method) => method === 'GET')
  return allowed.length === 0 ? [] : ['Allow', allowed.join(', ')]
}

/** Inside a batch WordPress merges no slashes: two of them stand for themselves in the identifier of a template, or match nothing. */
const mergesSlashes = (path: string, { pathParameters }: Found): boolean => {
  const identifier = Object.values(pathParameters).find((value) => value.includes('//'))
  const end = identifier === undefined ? path.length : path.indexOf(identifier.split('/', 1)[0] as string)
  return path.slice(0, end).includes('//')
}

/** What goes beyond WordPress's batch. */
type Wider = {
  /** The service that the item means; undefined when it is gone from the configuration. */
  readonly service: Service | undefined
  /** GET is allowed. */
  readonly mayRead: boolean
}

/** Whether an item may run: as WordPress decides it, before anything of the batch has run. */
export const admitItem = (batch: LocalRequest, item: BatchItem, { service, mayRead }: Wider): Admission => {
  if (service === undefined) return refusedBy('no_route')
  const isOwn = item.service === undefined
  const finding = service.find(item.method, item.path)
  if (finding.kind === 'refused') return refusedBy('ambiguous_request')
  if (finding.kind !== 'found' || mergesSlashes(item.path, finding)) return refusedBy('no_route')
  const { row, endpoint, pathParameters } = finding
  const fields = isOwn ? allowField(row, batch.request.fields['authorization'] !== undefined) : []
  const isAllowed = !isOwn || endpoint.allowBatch === true || (mayRead && item.method === 'GET')
  // A batch in a batch would multiply what one request may cost.
  if (!isAllowed || row.handledBy === 'batch') {
    const message = 'The requested route does not support batch requests.'
    return { ...refused(400, 'rest_batch_not_allowed', message), fields }
  }
  const validation = service.validator.validate({
    method: item.method,
    row,
    endpoint,
    pathParameters,
    query: item.query,
    contentType: item.content === undefined ? undefined : 'application/json',
    content: item.content,
  })
  if (validation.kind === 'invalid') {
    return { kind: 'refused', status: validation.status, body: validation.body, fields }
  }
  return {
    kind: 'runnable',
    admitted: { service, matching: finding, validation },
    conflict: {
      collection: row.collection,
      kind: row.kind,
      itemId: pathParameters['parent'] ?? pathParameters['id'],
      method: item.method,
      service: item.service,
    },
  }
}
