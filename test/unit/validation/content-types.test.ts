import { describe, expect, test } from 'vitest'
import { argumentsOf, ask, refusalOf } from './support.ts'

const bogus = { method: 'POST', content: '{"status":"bogus"}' }

describe('content types', () => {
  test.each([
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json;charset=x',
    'application/problem+json',
    'application/vnd.x.y+json',
  ])('%s is read as JSON', (contentType) => {
    expect(refusalOf({ ...bogus, contentType })).toMatchObject({
      data: { params: { status: expect.any(String) } },
    })
  })

  test('a form is read like a query', () => {
    const form = { method: 'POST', contentType: 'application/x-www-form-urlencoded; charset=UTF-8' }
    expect(refusalOf({ ...form, content: 'status=bogus' })).toMatchObject({ code: 'rest_invalid_param' })
    expect(
      argumentsOf({ ...form, content: 'title=a+b&categories[]=1&categories[]=2&sti.cky=1' }),
    ).toMatchObject({
      title: 'a b',
      categories: [1, 2],
    })
    expect(argumentsOf({ ...form, content: 'title=\u00e9' })['title']).toBe('\u00e9')
  })

  test('a form may have more parameters than a query, but not more than PHP reads', () => {
    const contentType = 'application/x-www-form-urlencoded'
    const fields = (count: number) => Array.from({ length: count }, (_, i) => `f${i}=1`).join('&')
    expect(ask({ method: 'POST', contentType, content: fields(1000) }).kind).toBe('valid')
    expect(refusalOf({ method: 'POST', contentType, content: fields(1001) })).toMatchObject({
      code: 'trellis_too_many_parameters',
    })
  })

  test.each([
    'text/plain',
    'application/json, text/plain',
    'multipart/form-data; boundary=x',
    'application/jsonx',
    '',
  ])('content of type "%s" is refused where no upload is expected', (contentType) => {
    expect(ask({ ...bogus, contentType })).toMatchObject({
      status: 415,
      code: 'trellis_unsupported_content_type',
    })
  })

  test('an upload goes by unread', () => {
    expect(
      ask({ row: 'media.collection', method: 'POST', content: 'GIF89a', contentType: 'image/gif' }).kind,
    ).toBe('valid')
  })

  test('content of a GET means nothing', () => {
    expect(ask({ content: '{"per_page":101}' })).toMatchObject({ kind: 'valid', query: '' })
  })
})
