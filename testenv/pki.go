// The certificates and keys of one test environment. One authority signs everything: the server's own
// certificate, the administrator's, and those that CertificateSigningRequests ask for.

package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const certificateLife = 10 * 365 * 24 * time.Hour

// pki names the files that the components read, and holds the administrator's credentials.
type pki struct {
	caCert, caKey                        string
	servingCert, servingKey              string
	serviceAccountKey, serviceAccountPub string
	caPEM, adminCertPEM, adminKeyPEM     []byte
}

// authority signs; it lives only while the files are made.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

func createPKI(dir string) (*pki, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	p := &pki{
		caCert: filepath.Join(dir, "ca.crt"), caKey: filepath.Join(dir, "ca.key"),
		servingCert: filepath.Join(dir, "serving.crt"), servingKey: filepath.Join(dir, "serving.key"),
		serviceAccountKey: filepath.Join(dir, "service-account.key"), serviceAccountPub: filepath.Join(dir, "service-account.pub"),
	}
	ca, err := p.createAuthority()
	if err != nil {
		return nil, err
	}
	if err := p.createServingCertificate(ca); err != nil {
		return nil, err
	}
	if err := p.createServiceAccountKeys(); err != nil {
		return nil, err
	}
	p.adminCertPEM, p.adminKeyPEM, err = ca.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "testenv-admin", Organization: []string{"system:masters"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return p, err
}

func (p *pki) createAuthority() (*authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	ca := &authority{key: key, certificate: &x509.Certificate{
		Subject:               pkix.Name{CommonName: "testenv-ca"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}}
	der, err := ca.sign(ca.certificate, key.Public())
	if err != nil {
		return nil, err
	}
	// The parsed form has the key identifier, by which the certificates below refer to this one.
	if ca.certificate, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	p.caPEM = encodeCertificate(der)
	return ca, writePair(p.caCert, p.caPEM, p.caKey, keyPEM)
}

func (p *pki) createServingCertificate(ca *authority) error {
	certPEM, keyPEM, err := ca.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	})
	if err != nil {
		return err
	}
	return writePair(p.servingCert, certPEM, p.servingKey, keyPEM)
}

func (p *pki) createServiceAccountKeys() error {
	key, err := newKey()
	if err != nil {
		return err
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	publicPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	return writePair(p.serviceAccountPub, publicPEM, p.serviceAccountKey, keyPEM)
}

// issue makes a key and a certificate for it.
func (ca *authority) issue(template *x509.Certificate) (certPEM, keyPEM []byte, err error) {
	key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := ca.sign(template, key.Public())
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err = encodeKey(key)
	return encodeCertificate(der), keyPEM, err
}

func (ca *authority) sign(template *x509.Certificate, public crypto.PublicKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	// Clocks that are set back a little must not make the environment unusable.
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().Add(certificateLife)
	return x509.CreateCertificate(rand.Reader, template, ca.certificate, public, ca.key)
}

func newKey() (*ecdsa.PrivateKey, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

func writePair(publicPath string, public []byte, keyPath string, key []byte) error {
	if err := os.WriteFile(publicPath, public, 0o644); err != nil {
		return err
	}
	return os.WriteFile(keyPath, key, 0o600)
}

// writeKubeconfig writes the administrator's kubeconfig, with everything embedded so that it can be copied.
func writeKubeconfig(path, url string, p *pki) error {
	const name = "testenv"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: url, CertificateAuthorityData: p.caPEM}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: p.adminCertPEM, ClientKeyData: p.adminKeyPEM}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return clientcmd.WriteToFile(*config, path)
}
