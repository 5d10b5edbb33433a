/* Hashes by libcrypto under the names by which packetdrill calls its own. Parts are hashed one after the other; 0 is success. */

#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

static unsigned char *join(size_t count, const unsigned char *parts[], const size_t *lengths, size_t *total)
{
	size_t at = 0;

	*total = 0;
	for (size_t i = 0; i < count; i++)
		*total += lengths[i];
	unsigned char *whole = malloc(*total + 1);
	for (size_t i = 0; whole && i < count; i++) {
		memcpy(whole + at, parts[i], lengths[i]);
		at += lengths[i];
	}
	return whole;
}

static int digest(const EVP_MD *kind, const unsigned char *key, size_t key_length, size_t count, const unsigned char *parts[],
		  const size_t *lengths, unsigned char *out)
{
	size_t total;
	unsigned char *whole = join(count, parts, lengths, &total);
	int done = 0;

	if (!whole)
		return -1;
	if (key)
		done = HMAC(kind, key, (int)key_length, whole, total, out, NULL) != NULL;
	else
		done = EVP_Digest(whole, total, out, NULL, kind, NULL) == 1;
	free(whole);
	return done ? 0 : -1;
}

int sha1_vector(size_t count, const unsigned char *parts[], const size_t *lengths, unsigned char *out)
{
	return digest(EVP_sha1(), NULL, 0, count, parts, lengths, out);
}

int sha256_vector(size_t count, const unsigned char *parts[], const size_t *lengths, unsigned char *out)
{
	return digest(EVP_sha256(), NULL, 0, count, parts, lengths, out);
}

int hmac_sha1_vector(const unsigned char *key, size_t key_length, size_t count, const unsigned char *parts[], const size_t *lengths,
		     unsigned char *out)
{
	return digest(EVP_sha1(), key, key_length, count, parts, lengths, out);
}

int hmac_sha256_vector(const unsigned char *key, size_t key_length, size_t count, const unsigned char *parts[],
		       const size_t *lengths, unsigned char *out)
{
	return digest(EVP_sha256(), key, key_length, count, parts, lengths, out);
}
