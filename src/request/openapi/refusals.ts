import type { Invalid, RequestFault } from '../../contracts/validation.ts'

const titles: Readonly<Record<RequestFault['code'], string>> = {
  unreadable_query: 'The query is not valid percent-encoded UTF-8.',
  too_many_parameters: 'The query has more parameters than allowed.',
  invalid_parameter: 'A parameter does not fit the description of the operation.',
  missing_body: 'The operation needs a body.',
  invalid_body: 'The body does not fit the description of the operation.',
  unsupported_content_type: 'The operation does not take a body of this type.',
}

export const faultOf = (
  code: RequestFault['code'],
  subject = '',
  errors: RequestFault['errors'] = [],
  status = 400,
): RequestFault => ({ kind: 'fault', status, code, subject, errors })

/** RFC 9457. It repeats no value of the request. */
export const problemOf = ({ code, status, errors }: RequestFault): Invalid => ({
  kind: 'invalid',
  status,
  code,
  body: {
    type: 'about:blank',
    title: titles[code],
    status,
    code,
    ...(errors.length === 0 ? {} : { errors }),
  },
})

export const asFragment = (pointer: string): string => `#${encodeURI(pointer)}`
