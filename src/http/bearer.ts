import { type RequestFields, requestField } from './fields.ts'

/** RFC 6750 §2.1: the scheme in any case, then one token68. */
const bearer = /^bearer +[A-Za-z0-9._~+/-]+=*$/i

/** Is a bearer token there? Whether it is good, only the upstream knows. */
export const hasBearer = (fields: RequestFields): boolean => {
  const credential = requestField(fields, 'authorization')
  return credential !== undefined && bearer.test(credential)
}
